/**
 * The result of a task: JSON text of bounded length and depth, so that it can be reported, kept and shown. A value that
 * cannot be kept becomes a sentence, never an exception.
 */
import { maxResultBytes } from '../../contract/wire.ts';
import type { Outcome } from '../contract.ts';

type Kept = Pick<Outcome, 'result' | 'unkept'>;

/** Deeper values cannot be sent as JSON to the API either. */
const maxDepth = 100;

/** What a function returned. Undefined is no result. */
export function resultOfValue(value: unknown): Kept {
  if (value === undefined) return {};
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? { unkept: 'its result is no JSON value' } : resultOfText(text);
  } catch (error) {
    return {
      unkept: `its result cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** What a task wrote. Blank text is no result. */
export function resultOfText(text: string): Kept {
  if (text.trim() === '') return {};
  const fault = resultFault(text);
  return fault === undefined ? { result: text } : { unkept: `its result ${fault}` };
}

/** Completes "its result …"; undefined where nothing is wrong with it. */
export function resultFault(text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxResultBytes) return `has ${bytes} bytes of JSON; at most ${maxResultBytes} are kept`;
  try {
    return isDeeper(JSON.parse(text), maxDepth) ? `is nested more than ${maxDepth} deep` : undefined;
  } catch (error) {
    return `is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
