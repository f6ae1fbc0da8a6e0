/**
 * Terminal codes in a line of output: colours and weights are understood, all others are taken out. A style goes on over
 * the end of a line until something changes it, so drawing a line requires the style at its beginning.
 */

/** One of the sixteen by number, or an exact one as CSS has it. */
export type Colour = number | string;

export interface Style {
  readonly ink?: Colour;
  readonly ground?: Colour;
  readonly bold?: true;
  readonly dim?: true;
  readonly italic?: true;
  readonly underline?: true;
  readonly inverse?: true;
}

export interface Piece {
  readonly text: string;
  readonly style: Style;
}

export const plain: Style = {};

const escape = '\u001B';
const bell = '\u0007';
/** Colours and cursor moves (`ESC [ … letter`), titles and links (`ESC ] … BEL`), the short ones, and a cut-off one. */
const code = new RegExp(
  `${escape}(?:\\[([0-?]*)[ -/]*([@-~])|\\][^${bell}${escape}]*(?:${bell}|${escape}\\\\)|\\[[0-?]*[ -/]*$|\\][^${bell}${escape}]*$|[ -/]*[0-Z\\\\^-~]|$)`,
  'g',
);
const styleCode = new RegExp(`${escape}\\[([\\d;:]*)m`, 'g');
// oxlint-disable-next-line no-control-regex -- what is left of them when codes are gone shows as boxes
const control = /[\u0000-\u0008\u000B-\u001F\u007F]/g;
// oxlint-disable-next-line no-control-regex
const special = /[\u0000-\u0008\u000B-\u001F\u007F]/;

/** The line as a terminal would show it: of a progress bar, only the last state. */
export function piecesOf(line: string, before: Style = plain): readonly Piece[] {
  if (!special.test(line)) return line === '' ? [] : [{ text: line, style: before }];
  const shownFrom = line.trimEnd().lastIndexOf('\r') + 1;
  let style = shownFrom === 0 ? before : styleAfter(line.slice(0, shownFrom), before);
  const shown = line.slice(shownFrom);
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of shown.matchAll(code)) {
    add(pieces, shown.slice(from, match.index), style);
    from = match.index + match[0].length;
    if (match[2] === 'm') style = applied(style, match[1] ?? '');
  }
  add(pieces, shown.slice(from), style);
  return pieces;
}

function add(pieces: Piece[], raw: string, style: Style): void {
  const text = raw.replaceAll(control, '');
  if (text !== '') pieces.push({ text, style });
}

/** The line without colours, as it is searched and copied. */
export function plainText(line: string): string {
  if (!special.test(line)) return line;
  return piecesOf(line)
    .map((piece) => piece.text)
    .join('');
}

/** Many lines at once, without a thought to what was drawn over. */
export function withoutCodes(text: string): string {
  return text.includes(escape) ? text.replaceAll(code, '') : text;
}

/** The style in force after a text. What stands before its last reset is not even looked at. */
export function styleAfter(text: string, before: Style): Style {
  if (!text.includes(escape)) return before;
  const reset = Math.max(text.lastIndexOf(`${escape}[0m`), text.lastIndexOf(`${escape}[m`));
  let style = reset === -1 ? before : plain;
  for (const [, parameters = ''] of (reset === -1 ? text : text.slice(reset)).matchAll(styleCode)) {
    style = applied(style, parameters);
  }
  return style;
}

/** The beginning of a style code that the next chunk may end. */
export function unfinishedCode(text: string): string {
  const at = text.lastIndexOf(escape);
  const rest = at === -1 ? '' : text.slice(at);
  return rest.length < 64 && /^.(?:\[[\d;:]*)?$/s.test(rest) ? rest : '';
}

/** The effect of each number; undefined removes a property. */
const changes: Readonly<Record<number, { readonly [K in keyof Style]: Style[K] | undefined }>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: undefined, dim: undefined },
  23: { italic: undefined },
  24: { underline: undefined },
  27: { inverse: undefined },
  39: { ink: undefined },
  49: { ground: undefined },
};

function applied(style: Style, parameters: string): Style {
  const numbers = parameters.split(/[;:]/).map(Number);
  let next = style;
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i] ?? 0;
    if (number === 38 || number === 48) {
      const { colour, used } = exactColour(numbers.slice(i + 1, i + 5));
      if (colour !== undefined) next = changed(next, number === 38 ? { ink: colour } : { ground: colour });
      i += used;
    } else if (number === 0) next = plain;
    else next = changed(next, changes[number] ?? oneOfSixteen(number));
  }
  return next;
}

function changed(style: Style, change: { readonly [K in keyof Style]: Style[K] | undefined }): Style {
  const entries = Object.entries({ ...style, ...change }).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? plain : Object.fromEntries(entries);
}

function oneOfSixteen(number: number): Style {
  if (number >= 30 && number <= 37) return { ink: number - 30 };
  if (number >= 90 && number <= 97) return { ink: number - 82 };
  if (number >= 40 && number <= 47) return { ground: number - 40 };
  if (number >= 100 && number <= 107) return { ground: number - 92 };
  return {};
}

/** The colour after 38 or 48: `5;n` of 256, or `2;r;g;b`. */
function exactColour([kind, a = 0, b = 0, c = 0]: readonly number[]): { colour: Colour | undefined; used: number } {
  if (kind === 5) return { colour: oneOf256(a), used: 2 };
  if (kind === 2) return { colour: `rgb(${byte(a)} ${byte(b)} ${byte(c)})`, used: 4 };
  return { colour: undefined, used: 1 };
}

function oneOf256(number: number): Colour | undefined {
  if (number < 16) return number;
  if (number > 255) return undefined;
  if (number >= 232) return `rgb(${[0, 0, 0].map(() => 8 + (number - 232) * 10).join(' ')})`;
  const cube = number - 16;
  const parts = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6];
  return `rgb(${parts.map((part) => (part === 0 ? 0 : 55 + part * 40)).join(' ')})`;
}

function byte(number: number): number {
  return Math.min(255, Math.max(0, Math.trunc(number) || 0));
}
