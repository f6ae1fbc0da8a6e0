/** A state that is being changed: notes what has changed, and leaves the original as it was. */
import type { Json } from '../json.ts';
import { changedQueues, changedWholes, type Delta } from './delta.ts';
import type { Counters, EarlySignal, EndedAs, Ending, FlowNode, FlowState, Inner } from './state.ts';

export class Draft {
  readonly #from: FlowState;
  readonly #nodes: Record<string, FlowNode>;
  readonly #store: Record<string, Json>;
  #f: Readonly<Record<string, Json>>;
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
    for (const [key, value] of Object.entries(state.f)) this.setField(key, value);
    for (const [key, value] of Object.entries(state.store)) this.keep(key, value);
    Object.assign(this.#ended, state.ended);
    const { input, ret, early, left, seen, counters, isPaused, ending } = state;
    Object.assign(this, { input, ret, early, left, seen, counters, isPaused, ending });
  }

  get nodes(): Readonly<Record<string, FlowNode>> {
    return this.#nodes;
  }

  node(nid: string): FlowNode | undefined {
    return Object.hasOwn(this.#nodes, nid) ? this.#nodes[nid] : undefined;
  }

  /** Adds a node, or replaces it. */
  put(nid: string, node: FlowNode): void {
    this.#nodes[nid] = node;
    this.#touchedNodes.add(nid);
  }

  /** Changes members of a node. Does nothing if the node is gone. */
  patch(nid: string, change: Partial<FlowNode>): void {
    const node = this.node(nid);
    if (node !== undefined) this.put(nid, { ...node, ...change });
  }

  remove(nid: string): void {
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
    const { input, ret, early, left, seen, counters, isPaused, ending } = this;
    const rest = { input, ret, early, left, seen, counters, isPaused, ending };
    const newEnds = Object.fromEntries(Object.entries(this.#ended).filter(([at, end]) => this.#from.ended[at] !== end));
    const hasEnds = Object.keys(newEnds).length > 0;
    const ended = hasEnds ? { ...this.#from.ended, ...newEnds } : this.#from.ended;
    const state: FlowState = { ...this.#from, ...rest, f: this.#f, nodes: this.#nodes, store: this.#store, ended };
    const parts = { ...changedQueues(this.#from, state), ...this.#changedParts(), ...(hasEnds && { ended: newEnds }) };
    const delta = { ...changedWholes(this.#from, state), ...parts };
    return { state, delta };
  }

  #changedParts(): Delta {
    const nodes: Record<string, FlowNode | null> = {};
    for (const nid of this.#touchedNodes) {
      const node = this.node(nid);
      // a node that came and went in one run leaves no trace
      if (node !== undefined) nodes[nid] = node;
      else if (Object.hasOwn(this.#from.nodes, nid)) nodes[nid] = null;
    }
    const f = Object.fromEntries([...this.#touchedFields].map((key) => [key, this.#f[key] ?? null]));
    const kept = [...this.#touchedStore].filter((key) => Object.hasOwn(this.#store, key));
    const dropped = [...this.#touchedStore].filter(
      (key) => !Object.hasOwn(this.#store, key) && Object.hasOwn(this.#from.store, key),
    );
    const store = Object.fromEntries(kept.map((key) => [key, this.#store[key] ?? null]));
    return {
      ...(Object.keys(nodes).length > 0 && { nodes }),
      ...(this.#touchedFields.size > 0 && { f }),
      ...(kept.length > 0 && { store }),
      ...(dropped.length > 0 && { dropped }),
    };
  }
}
