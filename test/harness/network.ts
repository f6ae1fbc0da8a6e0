/** A network in front of a real server that can go silent: it accepts everything sent, and nothing comes back. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Address } from '../../src/postgres/address.ts';

export interface Network {
  /** Address of the server through this network. */
  readonly address: Address;
  fallSilent(): void;
  close(): void;
}

export async function networkTo(behind: Address): Promise<Network> {
  const { searchParams, port } = new URL(behind.url);
  const sockets = new Set<Socket>();
  let silent = false;
  const server = createServer((socket) => {
    const upstream = connect(`${searchParams.get('host')}/.s.PGSQL.${port}`);
    for (const end of [socket, upstream]) sockets.add(end.on('error', () => {}));
    socket.on('data', (chunk) => silent || upstream.write(chunk));
    upstream.on('data', (chunk) => silent || socket.write(chunk));
    socket.on('close', () => silent || upstream.destroy());
    upstream.on('close', () => silent || socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(behind.url);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  url.searchParams.delete('host');
  return {
    address: { url: url.href, database: behind.database },
    fallSilent() {
      silent = true;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
