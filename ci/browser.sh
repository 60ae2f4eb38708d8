#!/bin/sh
# Chromium for the tests of the demo's page: installed as root on Debian, where one command has it.
# Anywhere else, or where that fails, the tests are left out and their last line says how to get it.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null && exit 0
done
ID=
[ -r "${OS_RELEASE:=/etc/os-release}" ] && . "$OS_RELEASE"
if [ "$ID" != debian ] || [ "$(id -u)" != 0 ]; then
  exit 0
fi
echo "installing chromium, in which the tests of the demo's page run"
export DEBIAN_FRONTEND=noninteractive
# a machine without a network must not keep the tests waiting
timeout 120 apt-get update -qq && timeout 300 apt-get install -qq --yes --no-install-recommends chromium >/dev/null ||
  echo "chromium could not be installed: the tests of the demo's page will be left out" >&2
