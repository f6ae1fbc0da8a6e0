/**
 * What a hosted function prints goes to the log of its conductor: the first 64 KiB of a call. All tenants share that log, and a
 * function may print without end.
 */
import type { Log } from '../../kernel/log.ts';
import type { Output } from '../../runtimes/contract.ts';

const maxLoggedBytes = 64 * 1024;

export function logOutput(log: Pick<Log, 'info' | 'warn'>, fields: Readonly<Record<string, string>>): Output {
  let left = maxLoggedBytes;
  return {
    write(stream, data) {
      if (left <= 0) return undefined;
      const text = data.subarray(0, left).toString('utf8').trimEnd();
      log.info({ ...fields, stream, text }, 'output of a hosted function');
      left -= data.length;
      if (left <= 0) log.warn({ ...fields, maxLoggedBytes }, 'a hosted function prints too much; the rest is left out');
      return undefined;
    },
  };
}
