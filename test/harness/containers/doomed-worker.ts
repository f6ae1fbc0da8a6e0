/** A process with the runtime `docker` and one endless container, for tests that kill it: `node FILE HOST REAPER`. */
import { dockerRuntime } from '../../../src/runtimes/docker/docker.ts';
import { makeTask } from '../../conformance/task.ts';
import { testImage } from './test-image.ts';

const [, , host = '', reaper = ''] = process.argv;
const runtime = dockerRuntime({
  host,
  reaper,
  environment: process.env,
  networks: ['none'],
  worker: () => ({ worker: 'doomed', incarnation: 1 }),
});
const args = ['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 0.1; done'];
const output = { write: (_: string, data: Buffer): undefined => void process.stdout.write(data) };
await runtime.run(
  makeTask({ kind: 'docker', image: testImage, args, pull: 'missing', volumes: [] }),
  output,
  new AbortController().signal,
);
