// echarts-gl comes without types; what is used of it is passed to use() alone.
declare module 'echarts-gl/charts' {
  export const SurfaceChart: Parameters<typeof import('echarts/core').use>[0];
}
declare module 'echarts-gl/components' {
  export const Grid3DComponent: Parameters<typeof import('echarts/core').use>[0];
}
