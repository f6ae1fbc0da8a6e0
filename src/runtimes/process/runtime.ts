/** Creates the runtime `process`. */
import type { RuntimeFactory } from '../factory.ts';
import { processRuntime } from './process.ts';

export const processFactory: RuntimeFactory = {
  serves: ['process'],
  make: ({ environment, users, log }) => processRuntime({ environment, users, log }),
};
