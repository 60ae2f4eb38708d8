// Colours of matrices: scores run through the colour of the card at 0, shares begin with it.

const PALETTES = {
  light: { none: [255, 255, 255], low: [33, 102, 172], high: [179, 88, 6], share: [13, 63, 130] },
  dark: { none: [27, 31, 36], low: [110, 175, 255], high: [255, 170, 95], share: [150, 195, 255] },
};

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

export function scoreColour(score, largest, dark = isDark()) {
  const palette = PALETTES[dark ? "dark" : "light"];
  return mixed(palette.none, score < 0 ? palette.low : palette.high, Math.abs(score) / largest);
}

export function shareColour(share, dark = isDark()) {
  const palette = PALETTES[dark ? "dark" : "light"];
  // the root, so that an arc of 0.05 can be seen
  return mixed(palette.none, palette.share, Math.sqrt(Math.max(share, 0)));
}

function mixed(from, to, part) {
  const share = Math.min(part, 1);
  const [red, green, blue] = from.map((value, i) => Math.round(value + share * (to[i] - value)));
  return `rgb(${red}, ${green}, ${blue})`;
}
