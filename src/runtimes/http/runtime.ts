/** Creates the runtime `http`. Without settings it reaches public addresses by https only. */
import { parseRanges } from '../../outbound/addresses.ts';
import type { RuntimeFactory } from '../factory.ts';
import { httpRuntime } from './http.ts';

export const httpFactory: RuntimeFactory = {
  serves: ['http'],
  make: ({ http: { allowHttp = false, allowCidrs = [], caFile } = {} }) =>
    httpRuntime({ allowHttp, allowed: parseRanges(allowCidrs, 'MILLRACE_HTTP'), caFile }),
};
