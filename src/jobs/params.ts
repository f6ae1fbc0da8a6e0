/** The limits of a run's params: their size, and the numbers they may hold. They apply to every source of params. */
import { numberFault } from '../kernel/text/exact-number.ts';

/** The size of their JSON, in UTF-8. */
export const maxParamsBytes = 256 * 1024;

/** Returns what is wrong with params, to be appended to "params", or undefined. */
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
