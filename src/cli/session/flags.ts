/** Reading the values of flags, and the examples under a command's help. */
import { type Command, InvalidArgumentError } from 'commander';
import { states } from '../../api/shapes.ts';
import { stateWord } from '../print/output.ts';

/** A flag that may be given more than once. */
export function repeated(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

/** What a shell makes of a variable that is not set is a slip, and not the same as no flag. */
export function filled(value: string): string {
  if (value !== '') return value;
  throw new InvalidArgumentError('It is empty.');
}

export function integer(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** A comma-separated list of known words. */
export function wordsOf(known: readonly string[]): (value: string) => string {
  return (value) => {
    const wrong = value.split(',').find((word) => !known.includes(word));
    if (wrong === undefined) return value;
    throw new InvalidArgumentError(`There is no ${JSON.stringify(wrong)}; there are ${known.join(', ')}.`);
  };
}

/** The states by which runs and tokens are chosen; one of them has two names. */
export const stateHelp = `${states.map(stateWord).join(', ')}; active is another word for ready`;

type Example = readonly [line: string, meaning: string];

export function examples(command: Command, lines: readonly Example[]): Command {
  const longest = Math.max(...lines.map(([line]) => line.length));
  const text = lines.map(([line, meaning]) => `  ${line.padEnd(longest)}  # ${meaning}`);
  return command.addHelpText('after', `\nExamples:\n${text.join('\n')}`);
}
