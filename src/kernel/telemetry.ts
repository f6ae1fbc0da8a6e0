/**
 * Telemetry: domain code emits typed events; logs, metrics and pages listen. Emitting never throws and never waits, so that
 * a listener cannot disturb the work.
 *
 * Each room declares the events that it emits (`declareEvent`). An event is passed on as a name and plain data, because
 * `Telemetry` crosses the engine contract: an engine of another version may emit events that this build does not know, or
 * that have other fields. The former have no listeners, and the latter are not passed to listeners.
 */

export interface Telemetry {
  emit(name: string, data: object): void;
  on(name: string, listener: (data: object) => void): void;
}

interface FieldTypes {
  readonly text: string;
  readonly number: number;
  readonly numbers: readonly number[];
}

type Fields = Readonly<Record<string, keyof FieldTypes>>;
type DataOf<F extends Fields> = { readonly [K in keyof F]: FieldTypes[F[K]] };

export interface TelemetryEvent<F extends Fields> {
  readonly name: string;
  emit(telemetry: Telemetry, data: DataOf<F>): void;
  on(telemetry: Telemetry, listener: (data: DataOf<F>) => void): void;
}

export function declareEvent<const F extends Fields>(name: string, fields: F): TelemetryEvent<F> {
  const isOurs = (data: object): data is DataOf<F> =>
    Object.entries(fields).every(([field, type]) => isOfType[type](Reflect.get(data, field)));
  return {
    name,
    emit: (telemetry, data) => telemetry.emit(name, data),
    on: (telemetry, listener) => telemetry.on(name, (data) => isOurs(data) && listener(data)),
  };
}

const isOfType: Readonly<Record<keyof FieldTypes, (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string',
  number: Number.isFinite,
  numbers: (value) => Array.isArray(value) && value.every(Number.isFinite),
};

export function makeTelemetry(onFault: (error: unknown) => void): Telemetry {
  const listeners = new Map<string, ((data: object) => void)[]>();
  return {
    on(name, listener) {
      listeners.set(name, [...(listeners.get(name) ?? []), listener]);
    },
    emit(name, data) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          listener(data);
        } catch (error) {
          onFault(error);
        }
      }
    },
  };
}
