/** The events that the gateway emits. */
import { declareEvent } from '../../kernel/telemetry.ts';

/** A request was answered. */
export const requestAnswered = declareEvent('request', { method: 'text', status: 'number', ms: 'number' });
