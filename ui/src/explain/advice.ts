/** Splits the advice of an explanation into words and commands to type. */
import { sentence } from './sentence.ts';

export interface AdvicePart {
  readonly kind: 'words' | 'command';
  readonly text: string;
}

/** A command is in backticks; without them, it ends where the sentence continues. */
const command = /`([^`]+)`|millrace .+?(?= runs it\b| says\b| starts one\b|;|$)/g;

export function adviceOf(next: string): readonly AdvicePart[] {
  const parts: AdvicePart[] = [];
  let from = 0;
  const add = (kind: AdvicePart['kind'], text: string): void => {
    if (text !== '') parts.push({ kind, text });
  };
  for (const { 0: found, 1: quoted, index } of next.matchAll(command)) {
    const words = next.slice(from, index);
    add('words', from === 0 && words !== '' ? sentence(words, true, '') : words);
    add('command', quoted ?? found);
    from = index + found.length;
  }
  const rest = next.slice(from);
  if (rest !== '') add('words', sentence(rest, from === 0));
  return parts;
}
