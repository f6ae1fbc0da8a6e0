/** Creates the runtime `function`: functions of a file get processes of their own, others are called in this process. */
import { packageFile } from '../../kernel/process/package-files.ts';
import type { RuntimeFactory } from '../factory.ts';
import { functionRuntime } from './function.ts';
import { functionProcesses } from './processes.ts';

const program = packageFile('dist', 'function-host.js');

export const functionFactory: RuntimeFactory = {
  serves: ['function'],
  missing: ({ functions }) =>
    typeof functions === 'string' || Object.keys(functions).length > 0
      ? undefined
      : 'no functions are given; name their file with --functions FILE.js',
  make: ({ functions, environment, users, log }) =>
    typeof functions === 'string'
      ? functionProcesses({ file: functions, program, environment, users, log })
      : functionRuntime({ functions }),
};
