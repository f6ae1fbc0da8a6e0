/** A state that is being changed: notes what has changed, and leaves the original as it was. */
import type { Json, JsonObject } from '../json.ts';
import { changedQueues, changedWholes, type Delta } from './delta.ts';
import type { Counters, EarlySignal, EndedAs, Ending, FlowNode, FlowState, Inner } from './state.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export class Draft {
  readonly #from: FlowState;
  readonly #nodes: Record<string, FlowNode>;
  #count: number;
  readonly #store: Record<string, Json>;
  #f: Readonly<Record<string, Json>>;
  /** Lists of children that this draft has made, and may extend. */
  readonly #ownLists = new WeakSet<readonly string[]>();
  readonly #touchedNodes = new Set<string>();
  readonly #touchedFields = new Set<string>();
  readonly #touchedStore = new Set<string>();
  readonly #ended: Record<string, EndedAs> = {};
  input: Json;
  ret: Json;
  early: readonly EarlySignal[];
  left: readonly Inner[];
  seen: FlowState['seen'];
  counters: Counters;
  isPaused: boolean;
  ending: Ending | null;

  constructor(from: FlowState) {
    this.#from = from;
    this.#nodes = { ...from.nodes };
    this.#count = Object.keys(from.nodes).length;
    this.#store = { ...from.store };
    this.#f = from.f;
    this.input = from.input;
    this.ret = from.ret;
    this.early = from.early;
    this.left = from.left;
    this.seen = from.seen;
    this.counters = from.counters;
    this.isPaused = from.isPaused;
    this.ending = from.ending;
  }

  /** Takes over a whole state. Only for a draft that began blank. */
  adopt(state: FlowState): void {
    for (const [nid, node] of Object.entries(state.nodes)) this.put(nid, node);
    this.setFields(state.f);
    for (const [key, value] of Object.entries(state.store)) this.keep(key, value);
    Object.assign(this.#ended, state.ended);
    const { input, ret, early, left, seen, counters, isPaused, ending } = state;
    Object.assign(this, { input, ret, early, left, seen, counters, isPaused, ending });
  }

  get nodes(): Readonly<Record<string, FlowNode>> {
    return this.#nodes;
  }

  get nodeCount(): number {
    return this.#count;
  }

  node(nid: string): FlowNode | undefined {
    return Object.hasOwn(this.#nodes, nid) ? this.#nodes[nid] : undefined;
  }

  /** Adds a node, or replaces it. */
  put(nid: string, node: FlowNode): void {
    if (!Object.hasOwn(this.#nodes, nid)) this.#count += 1;
    this.#nodes[nid] = node;
    this.#touchedNodes.add(nid);
  }

  /** Changes members of a node. Does nothing if the node is gone. */
  patch(nid: string, change: Partial<FlowNode>): void {
    const node = this.node(nid);
    if (node !== undefined) this.put(nid, { ...node, ...change });
  }

  /** Many children of one node cost as much as few. */
  addChild(parent: string | null, nid: string): void {
    const node = parent === null ? undefined : this.node(parent);
    if (parent === null || node === undefined) return;
    if (this.#ownLists.has(node.children)) {
      (node.children as string[]).push(nid);
      return;
    }
    const children = [...node.children, nid];
    this.#ownLists.add(children);
    this.put(parent, { ...node, children });
  }

  remove(nid: string): void {
    if (Object.hasOwn(this.#nodes, nid)) this.#count -= 1;
    delete this.#nodes[nid];
    this.#touchedNodes.add(nid);
  }

  get f(): Readonly<Record<string, Json>> {
    return this.#f;
  }

  setField(key: string, value: Json): void {
    this.#f = { ...this.#f, [key]: value };
    this.#touchedFields.add(key);
  }

  /** Many at once cost as much as one. */
  setFields(fields: JsonObject): void {
    this.#f = { ...this.#f, ...fields };
    for (const key of Object.keys(fields)) this.#touchedFields.add(key);
  }

  stored(key: string): Json | undefined {
    return Object.hasOwn(this.#store, key) ? this.#store[key] : undefined;
  }

  keep(key: string, value: Json): void {
    this.#store[key] = value;
    this.#touchedStore.add(key);
  }

  drop(key: string): void {
    delete this.#store[key];
    this.#touchedStore.add(key);
  }

  dropAll(prefix: string): void {
    for (const key of Object.keys(this.#store)) if (key.startsWith(prefix)) this.drop(key);
  }

  /** Notes how a step has ended. Again and again the same costs nothing, as in a loop. */
  noteEnd(at: string, end: EndedAs): void {
    this.#ended[at] = end;
  }

  nextVisit(): number {
    this.counters = { ...this.counters, visits: this.counters.visits + 1 };
    return this.counters.visits;
  }

  nextGeneration(): number {
    this.counters = { ...this.counters, generations: this.counters.generations + 1 };
    return this.counters.generations;
  }

  /** The new state, and how it differs from the original. */
  finish(): { readonly state: FlowState; readonly delta: Delta } {
    const from = this.#from;
    const ends = this.#newEnds();
    const state: FlowState = {
      format: from.format,
      input: this.input,
      f: this.#f,
      ret: this.ret,
      nodes: this.#nodes,
      store: this.#store,
      early: this.early,
      left: this.left,
      seen: this.seen,
      ended: ends === undefined ? from.ended : { ...from.ended, ...ends },
      counters: this.counters,
      isPaused: this.isPaused,
      ending: this.ending,
    };
    const delta: Writable<Delta> = changedWholes(from, state);
    Object.assign(delta, changedQueues(from, state));
    this.#addParts(delta);
    if (ends !== undefined) delta.ended = ends;
    return { state, delta };
  }

  #newEnds(): FlowState['ended'] | undefined {
    let ends: Record<string, EndedAs> | undefined;
    for (const [at, end] of Object.entries(this.#ended)) if (this.#from.ended[at] !== end) (ends ??= {})[at] = end;
    return ends;
  }

  #addParts(delta: Writable<Delta>): void {
    const nodes: Record<string, FlowNode | null> = {};
    let hasNodes = false;
    for (const nid of this.#touchedNodes) {
      const node = this.node(nid);
      // a node that came and went in one run leaves no trace
      if (node === undefined && !Object.hasOwn(this.#from.nodes, nid)) continue;
      nodes[nid] = node ?? null;
      hasNodes = true;
    }
    if (hasNodes) delta.nodes = nodes;
    if (this.#touchedFields.size > 0)
      delta.f = Object.fromEntries([...this.#touchedFields].map((key) => [key, this.#f[key] ?? null]));
    if (this.#touchedStore.size > 0) this.#addStored(delta);
  }

  #addStored(delta: Writable<Delta>): void {
    const touched = [...this.#touchedStore];
    const kept = touched.filter((key) => Object.hasOwn(this.#store, key));
    const dropped = touched.filter((key) => !Object.hasOwn(this.#store, key) && Object.hasOwn(this.#from.store, key));
    if (kept.length > 0) delta.store = Object.fromEntries(kept.map((key) => [key, this.#store[key] ?? null]));
    if (dropped.length > 0) delta.dropped = dropped;
  }
}
