/** `createConductor`: drives flows from inside the user's program, with the program's own functions as tasks. */
import { z } from 'zod';
import { MillraceError } from '../../errors.ts';
import { deadlineIn, stopOne } from '../../kernel/service.ts';
import { faultWords, shapeFaults } from '../../kernel/text/shape-faults.ts';
import type { CreateConductorOptions, OpenedConductor } from './open-conductor.ts';

export interface RunningConductor {
  /** Returns once the conductor is registered. Waits for a database that does not answer yet. */
  start(): Promise<void>;
  /** Stops calls under way: another conductor, or the next one, repeats them with the same key. */
  stop(): Promise<void>;
}

const checked = z.object({
  databaseUrl: z.url({ protocol: /^postgres(ql)?$/ }),
  functions: z.record(
    z.string().min(1).max(200),
    z.custom((value) => typeof value === 'function', 'not a function'),
  ),
  secretKey: z.string().min(1).optional(),
  home: z.string().min(1).optional(),
  publicUrl: z.url().optional(),
  maxCalls: z.int().min(1).max(100_000).optional(),
});

const stopMs = 5_000;

export function createConductor(options: CreateConductorOptions): RunningConductor {
  validateOptions(options);
  const over = new AbortController();
  let running: Promise<OpenedConductor> | undefined;
  return {
    async start() {
      running ??= openLater(options, over.signal);
      const { conductor } = await running;
      await conductor.start();
    },
    async stop() {
      over.abort();
      const opened = await running?.catch(() => undefined);
      if (opened === undefined) return;
      await stopOne(opened.conductor, deadlineIn(stopMs));
      await opened.close();
    },
  };
}

/** Programs that only test flows or run workers do not load the code of databases. */
async function openLater(options: CreateConductorOptions, signal: AbortSignal): Promise<OpenedConductor> {
  const { openConductor } = await import('./open-conductor.ts');
  return openConductor(options, signal);
}

function validateOptions(options: CreateConductorOptions): void {
  const parsed = checked.safeParse(options, faultWords);
  if (parsed.success) return;
  const faults = shapeFaults(parsed.error.issues);
  const list = faults.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new MillraceError('bad_configuration', `The conductor cannot be created: ${list}`, { faults });
}
