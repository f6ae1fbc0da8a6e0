/** The session of one command: its flags, its output, and its server. */
import { defaultTenant } from '../../contract/tenants.ts';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { z } from 'zod';
import { findConnection, given, type Place } from './connection.ts';
import { Ended, exitCodes, UsageError } from './exit.ts';
import type { Io } from './io.ts';
import { makeOutput, type Output } from '../print/output.ts';
import { makeServer, type Server } from './server.ts';

export interface Session {
  readonly io: Io;
  readonly out: Output;
  readonly signal: AbortSignal;
  readonly place: Place;
  /** `--tenant`, if it was given. */
  readonly tenantName: string | undefined;
  /** MILLRACE_TENANT, if it is set. `--tenant` overrides it. */
  readonly usualTenant: string | undefined;
  /** With another key than the user's, or with another signal than that of Ctrl-C, if they are given. */
  connect(other?: { readonly key?: string; readonly signal?: AbortSignal }): Promise<Server>;
  /** Asks the user to confirm a destructive action. Without a terminal, `--yes` is required. */
  confirm(question: string, yes: boolean): Promise<void>;
}

const globals = z.object({
  json: z.boolean().default(false),
  url: z.string().optional(),
  home: z.string().optional(),
  tenant: z.string().optional(),
});

type Run<S extends z.ZodObject> = (
  session: Session,
  args: readonly string[],
  options: z.output<S>,
) => Promise<void> | void;

/** Makes the action of a command. `options` declares the flags that it reads. */
export function verb<S extends z.ZodObject>(io: Io, options: S, run: Run<S>): (this: Command) => Promise<void> {
  return async function act(this: Command) {
    const given: unknown = this.optsWithGlobals();
    await run(openSession(io, globals.parse(given)), this.args, options.parse(given));
  };
}

/** For commands without flags of their own. */
export const noOptions = z.object({});

function openSession(io: Io, options: z.output<typeof globals>): Session {
  const signal = io.signal ?? new AbortController().signal;
  const usualTenant = given(io.env['MILLRACE_TENANT']);
  const tenant = options.tenant ?? usualTenant ?? defaultTenant;
  const place = { cwd: io.cwd, env: io.env, home: options.home, url: options.url };
  return {
    io,
    out: makeOutput(io, options.json),
    signal,
    place,
    tenantName: options.tenant,
    usualTenant,
    connect: async (other = {}) => {
      const own = await findConnection(place);
      return makeServer({ ...own, key: other.key ?? own.key }, tenant, other.signal ?? signal);
    },
    confirm: (question, yes) => confirm(io, question, yes),
  };
}

async function confirm(io: Io, question: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!canAsk(io)) throw new UsageError(`${question} Add --yes to confirm.`);
  io.stderr.write(`${question} [y/N] `);
  if (/^y(es)?$/i.test((await readLine(io)).trim())) return;
  io.stderr.write('nothing was changed\n');
  throw new Ended(exitCodes.failed);
}

/** Reads one line. Returns '' if the input ends or the user presses Ctrl-C, which stays a signal because raw mode is off. */
async function readLine(io: Io): Promise<string> {
  const lines = createInterface({ input: io.stdin, terminal: false, ...(io.signal ? { signal: io.signal } : {}) });
  try {
    return await new Promise<string>((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(''));
    });
  } finally {
    lines.close();
  }
}

export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true;
}
