/**
 * A shipper for each tenant that has runs here, so that one whose output cannot be kept holds up no other's (I11). What
 * gathers meanwhile is bounded for all together.
 */
import type { HeldRun } from '../../contract/wire.ts';
import { LogShipper, type LogShipperOptions, type Shipment, type Unshipped } from './log-shipper.ts';

interface Lane {
  readonly shipper: LogShipper;
  /** Runs whose output is not complete. */
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

  /** Gives up what is left; every wait ends. */
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
