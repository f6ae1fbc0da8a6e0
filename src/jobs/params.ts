/** The params of a run: how large they may be, and which numbers they may hold, wherever they come from. */
import { numberFault } from '../kernel/text/exact-number.ts';

/** Of their JSON, in UTF-8. */
export const maxParamsBytes = 256 * 1024;

/** What is wrong with params, or nothing; it follows "params". */
export function paramsFault(params: unknown): string | undefined {
  if (params === undefined || params === null) return undefined;
  let inexact: string | undefined;
  const text = JSON.stringify(params, (key, value: unknown) => {
    const fault = typeof value === 'number' ? numberFault(value) : undefined;
    if (fault !== undefined) inexact ??= `have a number in ${JSON.stringify(key)} that ${fault}`;
    return value;
  });
  if (inexact !== undefined) return inexact;
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxParamsBytes) return undefined;
  return `take ${bytes} bytes as JSON; at most ${maxParamsBytes} are allowed. Store large values elsewhere, and pass their address`;
}
