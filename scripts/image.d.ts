/** Types of image.js: the suites are TypeScript and compiled without reading JavaScript. */
export declare function prepareImage(arch?: string): Promise<void>;
