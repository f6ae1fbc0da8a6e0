/** Reads the answer of a work item from the command line: one object, or fields whose text is read by the type in the form. */
import { isRecord } from '../../../kernel/text/path.ts';
import { UsageError } from '../../session/exit.ts';
import type { Io } from '../../session/io.ts';
import { parseJsonText, readJsonFlag } from '../../session/json-value.ts';

interface FormField {
  readonly name: string;
  readonly type: string;
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

/** Numbers and booleans are written as JSON; everything else is text. The server checks the rest. */
function readField(text: string, form: readonly FormField[]): [name: string, value: unknown] {
  const at = text.indexOf('=');
  if (at <= 0) throw new UsageError(`${JSON.stringify(text)} must be FIELD=VALUE`);
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  const field = form.find((each) => each.name === name);
  if (field === undefined) {
    const known = form.map((each) => each.name).join(', ') || 'none';
    throw new UsageError(`the form has no field ${name}; its fields: ${known}`);
  }
  const isJson = ['boolean', 'number', 'integer'].includes(field.type);
  return [name, isJson ? parseJsonText(`${name}, which is a ${field.type},`, value) : value];
}
