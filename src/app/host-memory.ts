/**
 * How much memory a host may use, by `MILLRACE_HOST_MEMORY`.
 *
 * A host ends itself once its heap holds more than that. The limit at which Node aborts the process is twice as high: from
 * about 85 % of it on, the process is busy with garbage collection, and every tenant in it is late. A leak of 10 MB every
 * 100 ms kept the event loop for up to 2.4 s at a time there, and for less than 0.4 s at half of that limit (one run on a quiet machine).
 */
export interface HostMemory {
  /** Bytes that the heap may hold after garbage collection. */
  readonly heapLimit: number;
  /** Resident bytes. Beside its heap a process has code, buffers and garbage. */
  readonly memoryLimit: number;
  /** Mebibytes of heap at which Node aborts the process. */
  readonly abortAtMb: number;
}

export function hostMemory(memoryMb: number): HostMemory {
  const bytes = memoryMb * 2 ** 20;
  return { heapLimit: bytes, memoryLimit: bytes * 1.5, abortAtMb: memoryMb * 2 };
}
