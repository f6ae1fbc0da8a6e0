/** Logging: pino behind one name. A constant sentence plus fields, written once, where the thing is handled. */
import { type Logger, pino } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & { child(fields: object): Log };

export interface LogOptions {
  readonly level: string;
  readonly role: string;
}

/** Logs as JSON lines on standard error, so that standard output stays the command's answer. */
export function makeLog(options: LogOptions): Log {
  const base = { role: options.role, pid: process.pid };
  return pino({ level: options.level, base, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}

export const silent: Log = pino({ level: 'silent' });
