/** What makes, changes and ends tenants, put together for this installation. */
import { join } from 'node:path';
import { engineVersion, migrationsFolder } from '../engine/engine.ts';
import { formatStep } from '../kernel/time.ts';
import { enginesFolder } from '../launcher/engines.ts';
import type { Life } from '../launcher/life/life.ts';
import { readMigrations } from '../postgres/migrate.ts';
import { type Installation, isElsewhere } from './installation.ts';

export function makeLife(
  { config, control, controlAddress, hub, time, engines, addressOf }: Installation,
  databaseFault: Life['databaseFault'] = () => undefined,
): Life {
  return {
    databaseFault,
    clockFault: () => time.step && formatStep(time.step, time.heldMs),
    control,
    controlAddress,
    hub,
    time,
    engines,
    version: engineVersion,
    migrationsOf: (version) =>
      readMigrations(
        version === engineVersion
          ? migrationsFolder('tenant')
          : join(enginesFolder(config.home), version, 'migrations', 'tenant'),
      ),
    addressOf,
    isElsewhere: (row) => isElsewhere(config, row),
    discovers: config.discover === 'all',
    slotLimit: config.maxBackgroundWorkers,
  };
}
