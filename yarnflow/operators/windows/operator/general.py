"""The operator of windows in general: any assigner, any trigger, windows that merge."""

from __future__ import annotations

from typing import Any

from yarnflow.errors import UserCodeError
from yarnflow.operators.elements import MAX_WATERMARK_MS, Output
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.tables import StateTable
from yarnflow.operators.windows.assigner import MergingWindowAssigner, WindowAssigner
from yarnflow.operators.windows.operator.base import WindowOperatorBase
from yarnflow.operators.windows.operator.contents import Contents
from yarnflow.operators.windows.operator.contexts import AssignerContext, WindowTriggerContext
from yarnflow.operators.windows.operator.evaluation import Evaluation
from yarnflow.operators.windows.operator.merging import MERGING_WINDOWS, MergingWindowSet
from yarnflow.operators.windows.serializers import WindowNamespaces
from yarnflow.operators.windows.trigger import Trigger, TriggerResult


class WindowOperator(WindowOperatorBase):
    """Windows of any assigner and trigger; asks the trigger about each element.

    Parameters
    ----------
    trigger : Trigger
        Says when windows are evaluated.
    purge_fired : bool
        No element can follow in a window that has fired, so its contents can go.

    The others are those of :class:`WindowOperatorBase`.
    """

    trigger_context: WindowTriggerContext

    def __init__(
        self,
        assigner: WindowAssigner[Any, Any],
        trigger: Trigger[Any, Any],
        contents: Contents,
        evaluation: Evaluation,
        allowed_lateness_ms: int,
        late_tag_id: str | None,
        side_outputs: bool,
        purge_fired: bool = False,
    ) -> None:
        super().__init__(assigner, contents, evaluation, allowed_lateness_ms, late_tag_id, side_outputs)
        self.trigger = trigger
        self._merging = assigner if isinstance(assigner, MergingWindowAssigner) else None
        self._namespaces = WindowNamespaces(assigner.get_window_serializer())
        self._purge_fired = purge_fired

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.trigger_context = WindowTriggerContext(context, self.state)
        self._assigner_context = AssignerContext(context)
        self._windows: StateTable | None = None
        if self._merging is not None:
            self._windows = self.state.table(MERGING_WINDOWS, StateKind.VALUE)

    def add_elements(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        add = self._add_to_windows if self._merging is None else self._add_to_merging_windows
        state = self.state
        assign, assigner_context = self.assigner.assign_windows, self._assigner_context
        value = None
        try:
            for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
                state.current_key = key
                if not add(key, value, timestamp_ms, assign(value, timestamp_ms, assigner_context)):
                    if self.is_event_time:
                        self.add_late(value, timestamp_ms)
        except Exception as error:
            raise noted(error, state.operator_name, "element", value) from None

    def _add_to_windows(self, key: Any, value: Any, timestamp_ms: int, windows: Any) -> bool:
        """Put an element into its windows; false: it has none that is still there."""
        added = False
        for window in windows:
            if self._is_late(window):
                continue
            added = True
            namespace = self._namespaces.of(window)
            self.contents.add(key, namespace, value)
            self._on_element(key, value, timestamp_ms, window, namespace, namespace)
        return added

    def _add_to_merging_windows(self, key: Any, value: Any, timestamp_ms: int, windows: Any) -> bool:
        """As :meth:`_add_to_windows`, with windows that become one where they meet."""
        added = False
        known = self._load_windows(key)

        def on_merge(result: Any, merged: list[Any], state_window: Any, others: list[Any]) -> None:
            self._merge(key, result, merged, state_window, others)

        for window in windows:
            actual = known.add(window, on_merge)
            if self._is_late(actual):
                known.retire(actual)
                continue
            added = True
            contents_in = self._namespaces.of(known.state_window(actual))
            self.contents.add(key, contents_in, value)
            self._on_element(key, value, timestamp_ms, actual, self._namespaces.of(actual), contents_in)
        self._store_windows(key, known)
        return added

    def _on_element(
        self, key: Any, value: Any, timestamp_ms: int, window: Any, namespace: Any, contents_in: Any
    ) -> None:
        self.trigger_context.move(key, namespace)
        result = self.trigger.on_element(value, timestamp_ms, window, self.trigger_context)
        if result is not TriggerResult.CONTINUE:
            self._do(result, key, window, namespace, contents_in, timestamp_ms)
        cleanup_ms = self.cleanup_ms(window.max_timestamp())
        if cleanup_ms < MAX_WATERMARK_MS:
            if self.is_event_time:
                self.timers.register_event_time(cleanup_ms, key, namespace)
            else:
                self.timers.register_processing_time(cleanup_ms, key, namespace)

    def _do(
        self,
        result: TriggerResult,
        key: Any,
        window: Any,
        namespace: Any,
        contents_in: Any,
        moment_ms: int,
    ) -> None:
        """What a trigger wants."""
        if not isinstance(result, TriggerResult):
            raise UserCodeError(
                f"{type(self.trigger).__name__} returned {result!r} for window {window}; "
                "return a TriggerResult"
            )
        if result.is_fire():
            self.evaluate(key, namespace, window, contents_in, moment_ms)
        if result.is_purge() or (self._purge_fired and result.is_fire()):
            self.contents.clear(key, contents_in)

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._on_timer(timestamp_ms, key, namespace, self.trigger.on_event_time, self.is_event_time)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._on_timer(timestamp_ms, key, namespace, self.trigger.on_processing_time, not self.is_event_time)
        self.flush(output)

    def _on_timer(
        self, timestamp_ms: int, key: Any, namespace: Any, on_time: Any, may_clean_up: bool
    ) -> None:
        window = self._namespaces.window(namespace)
        contents_in, known = namespace, None
        if self._merging is not None:
            known = self._load_windows(key)
            state_window = known.state_window(window)
            if state_window is None:
                return  # a timer that its trigger forgot to delete when the window became another one
            contents_in = self._namespaces.of(state_window)
        self.state.current_key = key
        self.trigger_context.move(key, namespace)
        try:
            result = on_time(timestamp_ms, window, self.trigger_context)
        except Exception as error:
            what = f"timer {timestamp_ms} of {window} of key"
            raise noted(error, self.state.operator_name, what, key) from None
        if result is not TriggerResult.CONTINUE:
            self._do(result, key, window, namespace, contents_in, timestamp_ms)
        if may_clean_up and timestamp_ms == self.cleanup_ms(window.max_timestamp()):
            self.contents.clear(key, contents_in)
            self.trigger.clear(window, self.trigger_context)
            if self.evaluation.clears:
                self.enter(key, namespace)
                self.evaluation.clear(window)
            if known is not None:
                known.retire(window)
                self._store_windows(key, known)

    def _is_late(self, window: Any) -> bool:
        return self.is_event_time and (
            self.cleanup_ms(window.max_timestamp()) <= self.context.current_watermark_ms
        )

    def _load_windows(self, key: Any) -> MergingWindowSet:
        assert self._merging is not None and self._windows is not None
        window, stored = self._namespaces.window, self._windows.get(key) or {}
        return MergingWindowSet(
            self._merging, {window(known): window(state_window) for known, state_window in stored.items()}
        )

    def _store_windows(self, key: Any, known: MergingWindowSet) -> None:
        assert self._windows is not None
        namespace, windows = self._namespaces.of, known.state_windows
        if windows:
            stored = {namespace(window): namespace(state_window) for window, state_window in windows.items()}
            if stored != self._windows.get(key):
                self._windows.put(key, stored)
        else:
            self._windows.remove(key)

    def _merge(self, key: Any, result: Any, merged: list[Any], state_window: Any, others: list[Any]) -> None:
        """Carry trigger, timers and contents of merged windows over to the one they became."""
        max_timestamp_ms = result.max_timestamp()
        watermark_ms, now_ms = self.context.current_watermark_ms, self.context.processing_time_ms
        if self._is_late(result) or (not self.is_event_time and max_timestamp_ms <= now_ms):
            raise UserCodeError(
                f"{type(self.assigner).__name__} merged windows into {result}, which is over already "
                f"(watermark {watermark_ms}, processing time {now_ms}); merging must not make windows "
                "end earlier"
            )
        namespace = self._namespaces.of
        trigger_context = self.trigger_context
        trigger_context.move(key, namespace(result))
        trigger_context.merged = [namespace(window) for window in merged]
        self.trigger.on_merge(result, trigger_context)
        for window in merged:
            if window == result:
                continue
            trigger_context.move(key, namespace(window))
            self.trigger.clear(window, trigger_context)
            cleanup_ms = self.cleanup_ms(window.max_timestamp())
            if self.is_event_time:
                self.timers.delete_event_time(cleanup_ms, key, trigger_context.namespace)
            else:
                self.timers.delete_processing_time(cleanup_ms, key, trigger_context.namespace)
        self.contents.merge(key, namespace(state_window), [namespace(window) for window in others])
