/**
 * One shipper for each tenant with runs here, so that a tenant whose output cannot be stored delays no other (I11). The buffers of
 * all together are limited.
 */
import type { HeldRun } from '../../contract/wire.ts';
import { LogShipper, type LogShipperOptions, type Shipment, type Unshipped } from './log-shipper.ts';

interface Lane {
  readonly shipper: LogShipper;
  /** The number of runs whose output is not complete. */
  open: number;
}

export class LogShippers {
  readonly #options: LogShipperOptions;
  readonly #unshipped: Unshipped = { bytes: 0 };
  readonly #lanes = new Map<string, Lane>();
  #stopped = false;

  constructor(options: LogShipperOptions) {
    this.#options = options;
  }

  open(run: HeldRun): Shipment {
    const lane = this.#laneOf(run.tenant);
    const shipment = lane.shipper.open(run);
    lane.open++;
    return {
      write: (stream, data) => shipment.write(stream, data),
      abandon: () => shipment.abandon(),
      close: async () => {
        await shipment.close();
        lane.open--;
        if (lane.open === 0) this.#lanes.delete(run.tenant);
      },
    };
  }

  /** Abandons the remaining output; every wait ends. */
  stop(): void {
    this.#stopped = true;
    for (const { shipper } of this.#lanes.values()) shipper.stop();
  }

  #laneOf(tenant: string): Lane {
    const known = this.#lanes.get(tenant);
    if (known) return known;
    const lane = { shipper: new LogShipper({ ...this.#options, unshipped: this.#unshipped }), open: 0 };
    if (this.#stopped) lane.shipper.stop();
    this.#lanes.set(tenant, lane);
    return lane;
  }
}
