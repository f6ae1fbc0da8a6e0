/** `millrace down`: asks the `up` of this home to stop, waits for it, and stops a PostgreSQL that was left behind. */
import { stopEmbedded } from '../postgres/embedded/embedded.ts';
import { stopOwner } from '../postgres/embedded/home.ts';
import type { Role } from './role.ts';

/** `up` ends within its drain and 3 s; on a busy machine later. */
const patienceMs = 10_000;

export async function runDown({ config, say }: Role): Promise<void> {
  const pid = await stopOwner(config.home, config.drainMs + patienceMs);
  const orphan = await stopEmbedded(config.home);
  if (pid !== undefined) say(`Millrace (process ${pid}) has stopped.`);
  else say(orphan ? 'A PostgreSQL that was left behind has been stopped.' : `Nothing was running on ${config.home}.`);
}
