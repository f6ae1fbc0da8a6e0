/**
 * The identity of the worker of `up`: an id that stays over restarts, so that its runs return at once, and an incarnation that
 * grows with each start, even if the clock was set back. Both are files of the home. A damaged file is replaced, with a
 * warning.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { maxIncarnationAheadMs } from '../contract/wire.ts';
import { replaceDurably } from '../kernel/process/durable-file.ts';
import { isId, newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';

export interface WorkerIdentity {
  readonly id: string;
  readonly incarnation: number;
}

const idFile = 'worker-id';
const incarnationFile = 'worker-incarnation';

/** Creates the identity of this start. */
export async function nextIdentity(home: string, log: Log): Promise<WorkerIdentity> {
  const id = await readPart(home, idFile, log, (text) => (isId(text) ? text : undefined));
  const last = await readPart(home, incarnationFile, log, incarnationIn);
  const identity = { id: id ?? newId(), incarnation: Math.max((last ?? 0) + 1, Date.now()) };
  await keepIdentity(home, log, identity);
  return identity;
}

/** If the files cannot be written, the worker works all the same. The next start has another id. */
export async function keepIdentity(home: string, log: Log, { id, incarnation }: WorkerIdentity): Promise<void> {
  try {
    await replaceDurably(join(home, idFile), `${id}\n`);
    await replaceDurably(join(home, incarnationFile), `${incarnation}\n`);
  } catch (error) {
    log.warn({ err: error }, 'writing the worker identity failed; after a restart its runs return late');
  }
}

function incarnationIn(text: string): number | undefined {
  const incarnation = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return incarnation <= Date.now() + maxIncarnationAheadMs ? incarnation : undefined;
}

/** Undefined if the file does not exist or is damaged. */
async function readPart<T>(
  home: string,
  file: string,
  log: Log,
  parse: (text: string) => T | undefined,
): Promise<T | undefined> {
  const path = join(home, file);
  try {
    const parsed = parse((await readFile(path, 'utf8')).trim());
    if (parsed === undefined) log.warn({ file: path }, 'worker file damaged, replacing it');
    return parsed;
  } catch (error) {
    const isMissing = error instanceof Error && Reflect.get(error, 'code') === 'ENOENT';
    if (!isMissing) log.warn({ file: path, err: error }, 'worker file unreadable, replacing it');
    return undefined;
  }
}
