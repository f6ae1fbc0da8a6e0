/** The dependencies of the operations that create, change and delete tenants, for this installation. */
import { join } from 'node:path';
import { engineVersion } from '../engine/engine.ts';
import { formatStep } from '../kernel/time.ts';
import { enginesFolder } from '../loader/engines/engines.ts';
import type { Life } from '../tenants/life.ts';
import { ownSchemaSource, readSchemaSource } from '../postgres/schema-source.ts';
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
    schemaOf: (version) =>
      version === engineVersion
        ? ownSchemaSource('tenant')
        : readSchemaSource(join(enginesFolder(config.home), version), 'tenant'),
    addressOf,
    isElsewhere: (row) => isElsewhere(config, row),
    discovers: config.discover === 'all',
    slotLimit: config.maxBackgroundWorkers,
  };
}
