/** The parts of `bench -- bus`, for `--part`. */
export const busPartNames = ['bulk', 'single', 'idle', 'sick', 'snapshot', 'beside'] as const;
export type BusPartName = (typeof busPartNames)[number];
