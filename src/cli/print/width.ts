/** Measures and limits the width of a text in a terminal. */

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** East Asian wide and full-width blocks; emoji have their own Unicode property. */
const wide = new RegExp(
  '^[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\u33ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\ua000-\\ua4cf\\ua960-\\ua97c' +
    '\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u{1b000}-\\u{1b2ff}\\u{20000}-\\u{3fffd}]',
  'u',
);
const emoji = /^\p{Emoji_Presentation}|\ufe0f/u;
const invisible = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
const plain = /^[\x20-\x7e]*$/;

export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(segment: string): number {
  if (invisible.test(segment)) return 0;
  return emoji.test(segment) || wide.test(segment) ? 2 : 1;
}

/** Cuts to at most `width` columns, with `…` at the end. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 1;
  for (const { segment } of graphemes.segment(text)) {
    used += graphemeWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return width > 0 ? `${kept}…` : '';
}

export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return side === 'right' ? text + space : space + text;
}

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Makes untrusted text safe to print on one line: escapes control characters, line separators and bidirectional controls, so
 * that a description cannot move the cursor.
 */
export function oneLine(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (c) => short[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
