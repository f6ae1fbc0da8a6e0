/**
 * The result of a task: JSON text of limited length and depth, so that it can be reported, stored and displayed. A value that
 * cannot be stored becomes a message, never an exception.
 */
import { maxResultBytes } from '../../contract/wire.ts';
import type { Outcome } from '../contract.ts';

type Kept = Pick<Outcome, 'result' | 'unkept'>;

/** Deeper values cannot be sent to the API as JSON either. */
const maxDepth = 100;

/** The result of a function. Undefined is no result. */
export function resultOfValue(value: unknown): Kept {
  if (value === undefined) return {};
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined
      ? { unkept: 'its result is not a JSON value' }
      : kept(text, sizeFault(text) ?? depthFault(text));
  } catch (error) {
    return {
      unkept: `its result cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** The result that a task wrote. Blank text is no result. */
export function resultOfText(text: string): Kept {
  return text.trim() === '' ? {} : kept(text, resultFault(text));
}

function kept(text: string, fault: string | undefined): Kept {
  return fault === undefined ? { result: text } : { unkept: `its result ${fault}` };
}

/** Completes "its result …"; undefined: it is valid. */
export function resultFault(text: string): string | undefined {
  return sizeFault(text) ?? syntaxFault(text) ?? depthFault(text);
}

function sizeFault(text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  return bytes > maxResultBytes ? `has ${bytes} bytes of JSON; at most ${maxResultBytes} are kept` : undefined;
}

function syntaxFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function depthFault(json: string): string | undefined {
  return isDeeper(json, maxDepth) ? `is nested more than ${maxDepth} deep` : undefined;
}

/** For valid JSON. Reads the text, because walking 87,000 values took twice as long as parsing them. */
function isDeeper(json: string, levels: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (isInString) {
      if (char === '\\') i++;
      else if (char === '"') isInString = false;
    } else if (char === '"') isInString = true;
    else if (char === '[' || char === '{') {
      if (++depth > levels) return true;
    } else if (char === ']' || char === '}') depth--;
  }
  return false;
}
