/**
 * Logging: pino behind one type. A log line is a constant phrase plus fields, written once, where the event is handled. Lines
 * are JSON on standard error, because standard output is for the command's result. On a terminal they are formatted for people.
 */
import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'> & { child(fields: object): Log };

export interface LogOptions {
  readonly level: string;
  readonly role: string;
}

const stderr = 2;

export function makeLog(options: LogOptions): Log {
  const base = { role: options.role, pid: process.pid };
  const timestamp = pino.stdTimeFunctions.isoTime;
  const destination = pino.destination({ dest: stderr, sync: true });
  return pino({ level: options.level, base, timestamp }, isatty(stderr) ? readable(destination) : destination);
}

export const silent: Log = pino({ level: 'silent' });

/** 12:30:01 warn  host: the phrase (field=value …), and the stack of an error below it. */
function readable(destination: DestinationStream): DestinationStream {
  return {
    write(line) {
      const { level, time, role, pid: _, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
      const texts = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
      const more = texts.length > 0 ? ` (${texts.join(' ')})` : '';
      const label = pino.levels.labels[Number(level)] ?? '';
      const clock = String(time).slice(11, 19);
      destination.write(`${clock} ${label.padEnd(5)} ${String(role)}: ${String(msg)}${more}\n${stackOf(err)}`);
    },
  };
}

function stackOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const stack: unknown = Reflect.get(error, 'stack');
  return typeof stack === 'string' ? `${stack.replaceAll(/^/gm, '    ')}\n` : '';
}
