/** Reads JSON objects from flags. */
import { isRecord } from '../../../kernel/text/path.ts';
import { UsageError } from '../../session/exit.ts';

export function parseJsonFlag(flag: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${flag} is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
  if (isRecord(value)) return value;
  throw new UsageError(`${flag} must be a JSON object, such as '{"total": 5}'`);
}
