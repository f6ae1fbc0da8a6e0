/** Colours for terminals that support them, unless NO_COLOR is set. */
import type { Environment, Sink } from '../session/io.ts';

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Style = keyof typeof codes;
export type Paint = (style: Style, text: string) => string;

export function makePaint(sink: Sink, env: Environment): Paint {
  const coloured = sink.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  return coloured ? (style, text) => `\u001b[${codes[style]}m${text}\u001b[0m` : (_, text) => text;
}
