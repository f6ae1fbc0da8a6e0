/** A port for a server that restarts at the same address: the system gives it to no other process meanwhile. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the range of ephemeral ports. */
const firstPort = 20_000;
const count = 10_000;

export async function lastingPort(): Promise<number> {
  const port = firstPort + Math.floor(Math.random() * count);
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return lastingPort();
  server.close();
  await once(server, 'close');
  return port;
}
