"""First come, first served."""

import threading
import time

from repconc.serving.turns import Turns


def test_one_at_a_time_in_the_order_of_asking():
    turns, inside, order = Turns(), [], []

    def work(number: int) -> None:
        with turns:
            inside.append(number)
            assert len(inside) == 1
            order.append(number)
            time.sleep(0.01)
            inside.clear()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
        time.sleep(0.002)
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_who_comes_back_for_more_does_not_keep_others_out():
    turns, over = Turns(), threading.Event()

    def greedy() -> None:
        while not over.is_set():
            with turns:
                time.sleep(0.002)

    thread = threading.Thread(target=greedy)
    thread.start()
    waits = []
    for _ in range(20):
        began = time.perf_counter()
        with turns:
            waits.append(time.perf_counter() - began)
    over.set()
    thread.join()
    assert sorted(waits)[10] < 0.05
