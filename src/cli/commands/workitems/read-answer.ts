/** Reads the answer of a work item from the command line: one object, or fields whose text is read by the type in the form. */
import { isRecord } from '../../../kernel/text/path.ts';
import { UsageError } from '../../session/exit.ts';
import type { Io } from '../../session/io.ts';
import { readJsonFlag } from '../../session/json-value.ts';

interface FormField {
  readonly name: string;
  readonly type: string;
  readonly choices: readonly unknown[];
}

interface Given {
  readonly input: string | undefined;
  /** `NAME=VALUE` */
  readonly fields: readonly string[];
}

export async function readAnswer(
  io: Io,
  { input, fields }: Given,
  form: readonly FormField[],
): Promise<Record<string, unknown>> {
  if (input !== undefined && fields.length > 0) throw new UsageError('give fields or --input, not both');
  if (input !== undefined) {
    const value = await readJsonFlag(io, '--input', input);
    if (isRecord(value)) return value;
    throw new UsageError(`--input must be a JSON object with the fields of the form`);
  }
  return Object.fromEntries(fields.map((text) => readField(text, form)));
}

/** A choice is taken as the form has it. Booleans are true, false, yes or no; a number is a number; everything else is text. The server checks the rest. */
function readField(text: string, form: readonly FormField[]): [name: string, value: unknown] {
  const at = text.indexOf('=');
  if (at <= 0) throw new UsageError(`${JSON.stringify(text)} must be FIELD=VALUE`);
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  const field = form.find((each) => each.name === name);
  if (field === undefined) {
    const known = form.map((each) => each.name).join(', ') || 'none';
    throw new UsageError(`the form has no field ${name}; its fields: ${known}`);
  }
  const choice = field.choices.find((each) => String(each) === value);
  if (choice !== undefined) return [name, choice];
  const read = readers[field.type];
  if (read === undefined) return [name, value];
  const typed = read(value);
  if (typed === undefined)
    throw new UsageError(`${name} must be ${expected[field.type]}, not ${JSON.stringify(value)}`);
  return [name, typed];
}

type Reader = (text: string) => boolean | number | undefined;

const booleans: Readonly<Record<string, boolean>> = { true: true, yes: true, false: false, no: false };
const readNumber: Reader = (text) => (text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text));

const readers: Readonly<Record<string, Reader>> = {
  boolean: (text) => booleans[text.toLowerCase()],
  number: readNumber,
  integer: readNumber,
};

const expected: Readonly<Record<string, string>> = {
  boolean: 'true or false (or yes or no)',
  number: 'a number',
  integer: 'a whole number',
};
