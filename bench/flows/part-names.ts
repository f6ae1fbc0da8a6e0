/** The parts of `bench -- flows`, for `--part`. */
export const flowPartNames = ['rates', 'idle', 'old', 'workers'] as const;
export type FlowPartName = (typeof flowPartNames)[number];
