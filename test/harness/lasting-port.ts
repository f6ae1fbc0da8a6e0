/** A port for a server that comes back at the same address: nobody else is given it while the server is away. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that the system gives to whoever does not say which. */
const lowest = 20_000;
const count = 10_000;

export async function lastingPort(): Promise<number> {
  const port = lowest + Math.floor(Math.random() * count);
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
