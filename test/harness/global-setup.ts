/** Runs once before all suites: starts what they share. What it starts, the function it returns stops. */
import { startServer } from './postgres-server.ts';

export function setup(): Promise<() => Promise<void>> {
  return startServer();
}
