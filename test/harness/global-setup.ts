/** Runs once before all suites: starts the shared PostgreSQL server. The returned function stops it. */
import { startServer } from './postgres-server.ts';

export function setup(): Promise<() => Promise<void>> {
  return startServer();
}
