/** The params of a run: how large they may be, wherever they come from. */

/** Of their JSON, in UTF-8. */
export const maxParamsBytes = 256 * 1024;

/** What is wrong with the size of params, or nothing. */
export function paramsFault(params: unknown): string | undefined {
  if (params === undefined || params === null) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(params) ?? '');
  if (bytes <= maxParamsBytes) return undefined;
  return `take ${bytes} bytes as JSON; at most ${maxParamsBytes} are allowed. Store large values elsewhere, and pass their address`;
}
