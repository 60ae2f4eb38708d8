// Colours of matrices: scores run through the colour of the card at 0, shares begin with it.

const PALETTES = {
  light: { none: [255, 255, 255], low: [33, 102, 172], high: [179, 88, 6], share: [13, 63, 130] },
  dark: { none: [27, 31, 36], low: [110, 175, 255], high: [255, 170, 95], share: [150, 195, 255] },
};

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

// As red, green and blue, for those who set pixels.
export function scoreParts(score, largest, dark) {
  const palette = PALETTES[dark ? "dark" : "light"];
  return mixed(palette.none, score < 0 ? palette.low : palette.high, Math.abs(score) / largest);
}

export function shareParts(share, dark) {
  const palette = PALETTES[dark ? "dark" : "light"];
  // the root, so that an arc of 0.05 can be seen
  return mixed(palette.none, palette.share, Math.sqrt(Math.max(share, 0)));
}

export const scoreColour = (score, largest, dark = isDark()) => css(scoreParts(score, largest, dark));
export const shareColour = (share, dark = isDark()) => css(shareParts(share, dark));

function mixed(from, to, part) {
  const share = Math.min(part, 1);
  const channel = (i) => Math.round(from[i] + share * (to[i] - from[i]));
  return [channel(0), channel(1), channel(2)];
}

const css = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;
