/** The log of a run on its way to the shipper: both streams in order, masked and then limited. */
import type { Output, StreamName } from '../../runtimes/contract.ts';
import type { Shipment } from './log-shipper.ts';
import { Mask, type SecretLines } from './mask.ts';
import { OutputLimit, type Piece } from './output-limit.ts';

export class RunLog implements Output {
  readonly #shipment: Shipment;
  readonly #masks: Readonly<Record<StreamName, Mask>>;
  readonly #limit: OutputLimit;

  constructor(shipment: Shipment, options: { secrets: SecretLines; limitBytes: number }) {
    this.#shipment = shipment;
    this.#masks = { out: new Mask(options.secrets), err: new Mask(options.secrets) };
    this.#limit = new OutputLimit(options.limitBytes);
  }

  write(stream: StreamName, data: Buffer): Promise<void> | undefined {
    return this.#send(this.#limit.pass({ stream, data: this.#masks[stream].push(data) }));
  }

  /** Resolves when all output is acknowledged. */
  async close(): Promise<void> {
    for (const stream of ['out', 'err'] as const) {
      void this.#send(this.#limit.pass({ stream, data: this.#masks[stream].flush() }));
    }
    void this.#send(this.#limit.rest());
    await this.#shipment.close();
  }

  abandon(): void {
    this.#shipment.abandon();
  }

  /** The wait of the last piece covers those before it. */
  #send(pieces: readonly Piece[]): Promise<void> | undefined {
    let wait: Promise<void> | undefined;
    for (const piece of pieces) wait = this.#shipment.write(piece.stream, piece.data);
    return wait;
  }
}
