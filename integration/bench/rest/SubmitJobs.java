import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.JobID;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Submits the same job many times to a session cluster of Flink: SubmitJobs PORT COUNT. */
public class SubmitJobs {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(RestOptions.ADDRESS, "127.0.0.1");
    configuration.set(RestOptions.PORT, Integer.parseInt(arguments[0]));
    int count = Integer.parseInt(arguments[1]);
    try (RestClusterClient<String> client = new RestClusterClient<>(configuration, "bench")) {
      List<CompletableFuture<JobID>> submitted = new ArrayList<>();
      for (int number = 0; number < count; number++) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        env.fromSequence(0, Long.MAX_VALUE).print();
        submitted.add(client.submitJob(env.getStreamGraph().getJobGraph()));
        if (submitted.size() == 16) {
          for (CompletableFuture<JobID> each : submitted) System.out.println(each.get());
          submitted.clear();
        }
      }
      for (CompletableFuture<JobID> each : submitted) System.out.println(each.get());
    }
  }
}
