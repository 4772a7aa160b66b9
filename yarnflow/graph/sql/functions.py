"""Functions that the parser does not know as what they are in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlglot import exp

#: aggregates of Spark that the parser takes for ordinary functions
_MORE_AGGREGATES: Final = frozenset(
    "any bit_and bit_or bit_xor bool_and bool_or collect_list collect_set corr count_min_sketch "
    "covar_pop covar_samp every first_value grouping histogram_numeric hll_sketch_agg "
    "hll_union_agg kurtosis last_value listagg max_by min_by percentile percentile_approx "
    "regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy "
    "regr_syy skewness some std string_agg try_avg try_sum var_pop var_samp variance "
    "bitmap_construct_agg bitmap_or_agg mode median".split()
)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether an expression is a call of an aggregate function."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _MORE_AGGREGATES
    return isinstance(node, exp.AggFunc)
