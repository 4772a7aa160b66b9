"""A provider for Apache Airflow 3.3: tasks that start, follow, stop and restart jobs.

Runs in Airflow's workers, its triggerer and its DAG processor.  Light: what submits a job is a process of
its own (the command ``yarnflow``), everything else asks by REST, so that nothing here imports PySpark,
skein, Thrift or Hadoop.  Never decides what a job does next; that is the JobManager's.  Flink counterpart:
the provider ``apache-flink`` of Airflow, which starts jobs on Kubernetes and follows none of them.
"""
