// The two colour scales of the page. Both stay readable with any kind of colour vision: lightness carries
// the size, hue only the sign.

export type Rgb = [number, number, number];

interface Palette {
  weight: Rgb[];
  value: Rgb[];
}

const light: Palette = {
  weight: [[248, 247, 243], [205, 212, 238], [132, 145, 212], [74, 78, 170], [38, 32, 104]],
  value: [[22, 78, 140], [92, 154, 205], [246, 245, 241], [226, 128, 98], [150, 34, 40]],
};

const dark: Palette = {
  weight: [[28, 32, 44], [50, 57, 108], [86, 98, 176], [144, 160, 228], [226, 232, 255]],
  value: [[138, 196, 248], [52, 110, 168], [32, 36, 48], [178, 84, 62], [255, 166, 138]],
};

function along(stops: Rgb[], share: number): Rgb {
  const place = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * (stops.length - 1);
  const below = Math.min(stops.length - 2, Math.floor(place));
  const part = place - below;
  return stops[below].map((from, channel) => Math.round(from + part * (stops[below + 1][channel] - from))) as Rgb;
}

/** Weights from 0 to `most`. */
export function weightColour(weight: number, most: number, isDark: boolean): Rgb {
  return along((isDark ? dark : light).weight, most > 0 ? weight / most : 0);
}

/** Values from −`extent` to `extent`, zero in the middle. */
export function valueColour(value: number, extent: number, isDark: boolean): Rgb {
  return along((isDark ? dark : light).value, extent > 0 ? 0.5 + (0.5 * value) / extent : 0.5);
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** Black or white, whichever has the higher contrast on the colour: at least 4.5. */
export function inkOn([red, green, blue]: Rgb): string {
  const linear = [red, green, blue].map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.179 ? '#000000' : '#ffffff';
}

/** The 98.5th percentile of the magnitudes: one outlier does not make a strip pale. */
export function extentOf(values: ArrayLike<number>): number {
  // Typed arrays sort numbers without calling back.
  const sizes = Float64Array.from(values, Math.abs).filter(Number.isFinite).sort();
  return sizes.length === 0 ? 1 : sizes[Math.floor(0.985 * (sizes.length - 1))] || sizes[sizes.length - 1] || 1;
}
