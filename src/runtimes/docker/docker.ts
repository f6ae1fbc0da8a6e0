/** The runtime `docker`, where there is none: says so in words that help, instead of leaving the run waiting for ever. */
import { faulty, mismatch, type Runtime } from '../contract.ts';

export const dockerMissing: Runtime = {
  name: 'docker',
  async run({ work }) {
    if (work.kind !== 'docker') return mismatch('docker', work);
    return faulty(
      `the image "${work.image}" cannot be run: this worker has no Docker runtime. ` +
        'Give the task a "process: {command: [...]}" block instead, or a "function: {name, input}" one',
    );
  },
};
