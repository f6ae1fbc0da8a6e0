/** Parses the values of flags, and adds examples to the help of a command. */
import { type Command, InvalidArgumentError } from 'commander';
import { states } from '../../api/shapes.ts';
import { stateWord } from '../print/output.ts';

/** Collects the values of a flag that may be given more than once. */
export function collectValues(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

/** Rejects an empty value. It usually comes from an unset shell variable, and does not mean "no flag". */
export function requireText(value: string): string {
  if (value !== '') return value;
  throw new InvalidArgumentError('It must not be empty.');
}

export function integer(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** Checks a comma-separated list of known words. */
export function wordsOf(known: readonly string[]): (value: string) => string {
  return (value) => {
    const wrong = value.split(',').find((word) => !known.includes(word));
    if (wrong === undefined) return value;
    throw new InvalidArgumentError(`${JSON.stringify(wrong)} is not one of ${known.join(', ')}.`);
  };
}

/** Help for filters by the state of runs and tokens. `ready` has a second name. */
export const stateHelp = `${states.map(stateWord).join(', ')}; active is another word for ready`;

type Example = readonly [line: string, meaning: string];

export function examples(command: Command, lines: readonly Example[]): Command {
  const longest = Math.max(...lines.map(([line]) => line.length));
  const text = lines.map(([line, meaning]) => `  ${line.padEnd(longest)}  # ${meaning}`);
  return command.addHelpText('after', `\nExamples:\n${text.join('\n')}`);
}
