/** Creates the runtime `docker`, on workers whose containers are run by a Docker engine. */
import { packageFile } from '../../kernel/process/package-files.ts';
import type { RuntimeFactory } from '../factory.ts';
import { dockerRuntime } from './docker.ts';

const reaper = packageFile('dist', 'container-reaper.js');

export const dockerFactory: RuntimeFactory = {
  serves: ['docker'],
  make: ({ environment, containers = {}, log, worker }) =>
    dockerRuntime({ ...containers, environment, reaper, log, worker }),
};
